#!/usr/bin/env bash
# ShedLock 7.10.1 with usingDbTime, over MariaDB 10.11.5 whose zone has daylight saving (Europe/Berlin), MariaDB Connector/J
# 3.5.6, and the table of ShedLock's README (lock_until and locked_at are TIMESTAMP(3)).
#
# Expected: a lock that is free can be taken at any time of the year: "UTC_TIMESTAMP" sounds independent of zones.
# Seen: in the night in which the clock goes forward, from 01:50 UTC (for a lock of ten minutes) to 03:00 UTC, each lock() of
# a job that has run before ends in a LockException (MariaDB's error 1292), so no instance runs the job. A TIMESTAMP
# column reads the text of UTC_TIMESTAMP as a time of the session's zone, in which that hour does not exist. A job that has
# never run is locked (INSERT IGNORE), until 03:00 instead of for ten minutes.
#
# The clock is the session's variable timestamp, so any night will do.
. "$(dirname "$0")/common.sh"

TZ=Europe/Berlin mariadb_server 10.11.5
jars net.javacrumbs.shedlock:shedlock-provider-jdbc-template:7.10.1 org.springframework:spring-jdbc:7.0.2 \
  org.mariadb.jdbc:mariadb-java-client:3.5.6
cat >Night.java <<'JAVA'
import java.time.Duration;
import java.time.Instant;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.provider.jdbctemplate.JdbcTemplateLockProvider;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

class Night {
    static JdbcTemplate connect(String parameters) {
        return new JdbcTemplate(new DriverManagerDataSource(
                "jdbc:mariadb://127.0.0.1:" + System.getenv("MARIADB_PORT") + "/test" + parameters, "root", ""));
    }

    public static void main(String[] arguments) {
        var now = connect("");
        for (boolean hasRun : new boolean[] {true, false}) {
            for (String time : new String[] {"01:45", "01:55", "02:30", "02:55", "03:05"}) {
                now.execute("DROP TABLE IF EXISTS shedlock");
                now.execute("CREATE TABLE shedlock(name VARCHAR(64) NOT NULL, lock_until TIMESTAMP(3) NOT NULL, "
                        + "locked_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))");
                if (hasRun) {
                    now.execute("INSERT INTO shedlock VALUES ('job', '2026-03-01', '2026-03-01', 'yesterday')");
                }
                var night = connect("?sessionVariables=timestamp=" + Instant.parse("2026-03-29T" + time + ":00Z").getEpochSecond());
                LockProvider locks = new JdbcTemplateLockProvider(
                        JdbcTemplateLockProvider.Configuration.builder().withJdbcTemplate(night).usingDbTime().build());
                String outcome;
                try {
                    var lock = locks.lock(new LockConfiguration(Instant.now(), "job", Duration.ofMinutes(10), Duration.ZERO));
                    outcome = lock.isPresent() ? "locked until "
                            + night.queryForObject("SELECT DATE_FORMAT(lock_until, '%H:%i') FROM shedlock", String.class) : "not locked";
                } catch (Exception e) {
                    outcome = e.getClass().getSimpleName();
                }
                System.out.println(time + " UTC, " + (hasRun ? "has run before: " : "new job: ") + outcome);
            }
        }
    }
}
JAVA
MARIADB_PORT=$MARIADB_PORT timeout 300 java -cp 'lib/*' Night.java >seen 2>errors || { cat errors; exit 1; }
compare seen <<'EXPECTED'
01:45 UTC, has run before: locked until 01:55
01:55 UTC, has run before: LockException
02:30 UTC, has run before: LockException
02:55 UTC, has run before: LockException
03:05 UTC, has run before: locked until 03:15
01:45 UTC, new job: locked until 01:55
01:55 UTC, new job: locked until 03:00
02:30 UTC, new job: locked until 03:00
02:55 UTC, new job: locked until 03:05
03:05 UTC, new job: locked until 03:15
EXPECTED
