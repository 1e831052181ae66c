import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.table.checkpoint.Checkpoint;
import org.apache.hudi.common.table.checkpoint.CheckpointUtils;

/** What Hudi's own CheckpointUtils finds in the extra metadata of a commit: key=value arguments. */
public class CheckpointPlay {
  public static void main(String[] pairs) throws Exception {
    HoodieCommitMetadata commit = new HoodieCommitMetadata();
    for (String pair : pairs) {
      int cut = pair.indexOf('=');
      commit.addMetadata(pair.substring(0, cut), pair.substring(cut + 1));
    }
    Checkpoint found = CheckpointUtils.getCheckpoint(commit);
    System.out.println(found.getClass().getSimpleName() + "|" + found.getCheckpointKey() + "|" + found.getCheckpointResetKey() + "|" + found.getCheckpointIgnoreKey());
  }
}
