import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Properties;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.apache.hudi.aws.transaction.lock.S3StorageLockClient;
import org.apache.hudi.client.transaction.lock.StorageBasedLockProvider;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.exception.HoodieLockException;

/**
 * A holder of Hudi's storage-based lock, moved by words on its input; it answers each with a line.
 *
 * <p>Arguments: the table, a file next to it, how long a lock is valid and how often it is renewed (seconds). Words:
 * try (one attempt), take (for up to a minute), release, lost (has Hudi interrupted us, because a renewal failed?), or a
 * number: so many times take, append an h to the file, release.
 */
public class LockPlay {
  public static void main(String[] arguments) {
    try {
      play(arguments);
    } catch (Throwable error) {
      error.printStackTrace();
      Runtime.getRuntime().halt(1); // threads of a lock that is held would keep the process up
    }
  }

  private static void play(String[] arguments) throws Exception {
    String file = arguments[1];
    Properties settings = new Properties();
    settings.setProperty("hoodie.base.path", arguments[0]);
    settings.setProperty("hoodie.write.lock.storage.validity.timeout.secs", arguments[2]);
    settings.setProperty("hoodie.write.lock.storage.renew.interval.secs", arguments[3]);
    StorageBasedLockProvider lock = new StorageBasedLockProvider(new LockConfiguration(settings), null);
    S3StorageLockClient store = new S3StorageLockClient("", file, settings);
    BufferedReader words = new BufferedReader(new InputStreamReader(System.in));
    System.out.println("ready");
    for (String word = words.readLine(); word != null; word = words.readLine()) {
      switch (word) {
        case "try":
          System.out.println(lock.tryLock());
          break;
        case "take":
          System.out.println(lock.tryLock(60, TimeUnit.SECONDS));
          break;
        case "lost":
          System.out.println(Thread.interrupted());
          break;
        case "release":
          System.out.println(release(lock));
          break;
        default:
          for (int left = Integer.parseInt(word); left > 0; left--) {
            while (!lock.tryLock()) {
              Thread.sleep(3);
            }
            store.writeObject(file, store.readObject(file, false).orElse("") + "h");
            lock.unlock();
            Thread.sleep(ThreadLocalRandom.current().nextInt(30)); // who goes on at once has the lock at once
          }
          System.out.println("done");
      }
    }
    lock.close();
  }

  private static String release(StorageBasedLockProvider lock) {
    try {
      lock.unlock();
      return "released";
    } catch (HoodieLockException error) {
      return "refused: " + error.getMessage();
    }
  }
}
