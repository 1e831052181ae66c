import java.net.InetSocketAddress;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.RetryingHMSHandler;
import org.apache.hadoop.hive.metastore.TSetIpAddressProcessor;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;

/** A Hive metastore with a database in memory; its tables of locks are those that Hive's own tests make. */
public class Metastore {
  public static void main(String[] arguments) throws Throwable {
    set("javax.jdo.option.ConnectionURL", "jdbc:derby:memory:metastore;create=true");
    set("javax.jdo.option.ConnectionDriverName", "org.apache.derby.jdbc.EmbeddedDriver");
    set("datanucleus.schema.autoCreateAll", "true");
    set("metastore.schema.verification", "false");
    set("metastore.warehouse.dir", arguments[1]);
    set("metastore.txn.timeout", arguments[2] + "s");
    // What takes locks of silent holders away. Hive 3 starts it together with the compactor's initiator, which the jar of
    // the metastore alone has not.
    set("metastore.task.threads.always", "org.apache.hadoop.hive.metastore.txn.AcidHouseKeeperService");
    set("metastore.timedout.txn.reaper.start", "1s");
    set("metastore.timedout.txn.reaper.interval", "1s");
    set("metastore.expression.proxy", "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy");
    Configuration settings = MetastoreConf.newMetastoreConf();
    TxnDbUtil.prepDb(settings);
    // HiveMetaStore.main listens on all addresses; this serves the same handler on this machine alone.
    var handler = RetryingHMSHandler.getProxy(settings, new HiveMetaStore.HMSHandler("metastore", settings, false), false);
    var socket = new TServerSocket(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])));
    new TThreadPoolServer(new TThreadPoolServer.Args(socket).processor(new TSetIpAddressProcessor<>(handler))).serve();
  }

  private static void set(String name, String value) {
    System.setProperty(name, value);
  }
}
