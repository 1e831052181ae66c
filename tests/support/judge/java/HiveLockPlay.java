import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider;
import org.apache.hudi.storage.hadoop.HadoopStorageConfiguration;

/**
 * A holder of Hudi's lock at a Hive metastore, moved by words on its input; it answers each with a line.
 *
 * <p>Arguments: the metastore's URI, database, table. Words: try (one attempt), take (for up to a minute), release.
 */
public class HiveLockPlay {
  public static void main(String[] arguments) {
    try {
      play(arguments);
    } catch (Throwable error) {
      error.printStackTrace();
    }
    Runtime.getRuntime().halt(1); // threads of the lock would keep the process up
  }

  private static void play(String[] arguments) throws Exception {
    Properties settings = new Properties();
    settings.setProperty("hoodie.write.lock.hivemetastore.uris", arguments[0]);
    settings.setProperty("hoodie.write.lock.hivemetastore.database", arguments[1]);
    settings.setProperty("hoodie.write.lock.hivemetastore.table", arguments[2]);
    settings.setProperty("hoodie.write.lock.heartbeat_interval_ms", "1000");
    settings.setProperty("hoodie.write.lock.num_retries", "3");
    settings.setProperty("hoodie.write.lock.wait_time_ms_between_retry", "100");
    LockConfiguration lockSettings = new LockConfiguration(settings);
    HadoopStorageConfiguration storage = new HadoopStorageConfiguration(new Configuration());
    BufferedReader words = new BufferedReader(new InputStreamReader(System.in));
    HiveMetastoreBasedLockProvider lock = new HiveMetastoreBasedLockProvider(lockSettings, storage);
    System.out.println("ready");
    for (String word = words.readLine(); word != null; word = words.readLine()) {
      switch (word) {
        case "try":
          System.out.println(tryLock(lock, 2));
          break;
        case "take":
          System.out.println(tryLock(lock, 60));
          break;
        default:
          lock.unlock();
          System.out.println("released");
      }
    }
  }

  private static boolean tryLock(HiveMetastoreBasedLockProvider lock, int seconds) {
    try {
      return lock.tryLock(seconds, TimeUnit.SECONDS);
    } catch (RuntimeException error) { // Hudi's answer when it waits in vain
      System.err.println(error);
      return false;
    }
  }
}
