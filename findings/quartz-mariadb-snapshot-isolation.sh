#!/usr/bin/env bash
# Quartz 2.5.2, a cluster of two nodes with the documented settings (JobStoreTX, isClustered), over MariaDB 11.4.5, MariaDB
# Connector/J 3.5.6, and tables_mysql_innodb.sql of its jar. innodb_snapshot_isolation is OFF by default in 11.4, and ON
# since 11.6.2, so in the long-term version 11.8.
#
# Expected: nodes that compete for a trigger find "0 rows" and go on: Quartz's update has the old state in its condition.
# Seen with ON: the node that comes second gets error 1020 for that update, for it has read the trigger in the same
# REPEATABLE READ transaction before it takes it. Quartz takes that for a failure of the database: it logs "An error occurred
# while scanning for the next triggers to fire" several times a minute. The jobs run, later. With OFF there is no error.
. "$(dirname "$0")/common.sh"

jars org.quartz-scheduler:quartz:2.5.2 com.mchange:c3p0:0.11.2 org.mariadb.jdbc:mariadb-java-client:3.5.6 org.slf4j:slf4j-simple:2.0.17
unzip -q lib/quartz-2.5.2.jar org/quartz/impl/jdbcjobstore/tables_mysql_innodb.sql
cat >Cluster.java <<'JAVA'
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.DriverManager;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
import org.quartz.*;
import org.quartz.impl.SchedulerRepository;
import org.quartz.impl.StdSchedulerFactory;

public class Cluster {
    static final AtomicInteger runs = new AtomicInteger();
    static final AtomicInteger errors = new AtomicInteger();

    public static class Work implements Job {
        @Override
        public void execute(JobExecutionContext context) {
            runs.incrementAndGet();
        }
    }

    static Scheduler node(String name, String url) throws SchedulerException {
        var p = new Properties();
        p.setProperty("org.quartz.scheduler.instanceName", "cluster");
        p.setProperty("org.quartz.scheduler.instanceId", name);
        p.setProperty("org.quartz.threadPool.threadCount", "5");
        p.setProperty("org.quartz.jobStore.class", "org.quartz.impl.jdbcjobstore.JobStoreTX");
        p.setProperty("org.quartz.jobStore.driverDelegateClass", "org.quartz.impl.jdbcjobstore.StdJDBCDelegate");
        p.setProperty("org.quartz.jobStore.isClustered", "true");
        p.setProperty("org.quartz.jobStore.dataSource", "ds");
        p.setProperty("org.quartz.dataSource.ds.driver", "org.mariadb.jdbc.Driver");
        p.setProperty("org.quartz.dataSource.ds.URL", url);
        p.setProperty("org.quartz.dataSource.ds.user", "root");
        p.setProperty("org.quartz.dataSource.ds.password", "");
        p.setProperty("org.quartz.dataSource.ds.maxConnections", "10");
        var scheduler = new StdSchedulerFactory(p).getScheduler();
        SchedulerRepository.getInstance().remove("cluster"); // or the next node would be this one
        scheduler.getListenerManager().addSchedulerListener(new org.quartz.listeners.SchedulerListenerSupport() {
            @Override
            public void schedulerError(String message, SchedulerException cause) {
                for (Throwable t = cause; t != null; t = t.getCause()) {
                    if (t instanceof java.sql.SQLException e && e.getErrorCode() == 1020) {
                        errors.incrementAndGet();
                        return;
                    }
                }
            }
        });
        return scheduler;
    }

    public static void main(String[] arguments) throws Exception {
        var url = "jdbc:mariadb://127.0.0.1:" + System.getenv("MARIADB_PORT") + "/test";
        try (var c = DriverManager.getConnection(url + "?allowMultiQueries=true", "root", ""); var s = c.createStatement()) {
            s.execute("SET GLOBAL innodb_snapshot_isolation = " + arguments[0]); // for the connections that follow
            s.execute(Files.readString(Path.of("org/quartz/impl/jdbcjobstore/tables_mysql_innodb.sql")).replaceAll("(?m)^#.*$", ""));
        }
        var nodes = List.of(node("one", url), node("two", url));
        for (int i = 0; i < 10; i++) {
            nodes.get(0).scheduleJob(JobBuilder.newJob(Work.class).withIdentity("job" + i).build(), TriggerBuilder.newTrigger()
                    .withIdentity("trigger" + i).startNow().withSchedule(SimpleScheduleBuilder.repeatSecondlyForever(1)).build());
        }
        for (var node : nodes) {
            node.start();
        }
        for (int second = 0; second < 120 && (second < 30 || arguments[0].equals("ON") && errors.get() == 0); second++) {
            Thread.sleep(1000);
        }
        System.out.println("innodb_snapshot_isolation " + arguments[0] + ": jobs run: " + (runs.get() > 0)
                + ", error 1020 while Quartz looks for triggers: " + (errors.get() > 0));
        for (var node : nodes) {
            node.shutdown(true);
        }
        System.exit(0);
    }
}
JAVA
javac -cp 'lib/*' Cluster.java
mariadb_server 11.4.5
for setting in ON OFF; do MARIADB_PORT=$MARIADB_PORT timeout 300 java -cp 'lib/*:.' Cluster $setting 2>errors; done >seen || { tail -20 errors; exit 1; }
compare seen <<'EXPECTED'
innodb_snapshot_isolation ON: jobs run: true, error 1020 while Quartz looks for triggers: true
innodb_snapshot_isolation OFF: jobs run: true, error 1020 while Quartz looks for triggers: false
EXPECTED
