import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.apache.hudi.sync.common.util.ManifestFileWriter;

import org.apache.hadoop.conf.Configuration;

/** Hudi's own lists of base files for BigQuery, of paths and of names, beside each table: paths of tables as arguments. */
public class ManifestPlay {
  public static void main(String[] tables) throws Exception {
    for (String table : tables) {
      HoodieTableMetaClient meta = HoodieTableMetaClient.builder()
          .setConf(HadoopFSUtils.getStorageConf(new Configuration())).setBasePath(table).build();
      for (boolean absolute : new boolean[] {true, false}) {
        ManifestFileWriter.builder().setMetaClient(meta).setUseFileListingFromMetadata(false).build().writeManifestFile(absolute);
      }
    }
  }
}
