#!/usr/bin/env bash
# JdbcLockRegistry of Spring Integration 7.1.2 (Java), over Apache Derby 10.16.1.1 and, for comparison, H2 2.4.240, each with the
# script for it in Spring's own jar (schema-derby.sql, schema-h2.sql).
#
# Expected: the registry works on each database for which the jar has a script.
# Seen: on Derby no lock is ever acquired. The repository binds times as java.time.LocalDateTime, which Derby's JDBC driver does
# not take, so tryLock() and lock() throw CannotAcquireLockException. By its name that is a lock held by another one; that
# no statement works is said in its cause alone.
. "$(dirname "$0")/common.sh"

jars org.springframework.integration:spring-integration-jdbc:7.1.2 org.apache.derby:derby:10.16.1.1 org.apache.derby:derbytools:10.16.1.1 \
  com.h2database:h2:2.4.240 org.slf4j:slf4j-nop:2.0.17
cat >Trial.java <<'JAVA'
import java.util.UUID;
import org.springframework.core.io.ClassPathResource;
import org.springframework.integration.jdbc.lock.DefaultLockRepository;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.datasource.init.ResourceDatabasePopulator;
import org.springframework.jdbc.support.JdbcTransactionManager;

public class Trial {
    static String attempt(JdbcLockRegistry registry) throws Exception {
        var lock = registry.obtain(UUID.randomUUID().toString());
        try {
            if (!lock.tryLock()) {
                return "refused";
            }
            lock.unlock();
            return "acquired and released";
        } catch (RuntimeException e) {
            Throwable cause = e;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            return e.getClass().getSimpleName() + ", by " + cause.getMessage();
        }
    }

    public static void main(String[] args) throws Exception {
        for (var url : new String[] {"jdbc:h2:mem:locks;DB_CLOSE_DELAY=-1", "jdbc:derby:memory:locks;create=true"}) {
            var name = url.split(":")[1];
            var source = new DriverManagerDataSource(url);
            new ResourceDatabasePopulator(new ClassPathResource("org/springframework/integration/jdbc/schema-" + name + ".sql")).execute(source);
            var repository = new DefaultLockRepository(source);
            repository.setTransactionManager(new JdbcTransactionManager(source));
            repository.afterPropertiesSet();
            repository.afterSingletonsInstantiated();
            System.out.println(name + ": " + attempt(new JdbcLockRegistry(repository)));
        }
        System.exit(0);
    }
}
JAVA
javac -cp 'lib/*' Trial.java
timeout 120 java -cp 'lib/*:.' Trial >seen
compare seen <<'EXPECTED'
h2: acquired and released
derby: CannotAcquireLockException, by An attempt was made to get a data value of type 'TIMESTAMP' from a data value of type 'java.time.LocalDateTime'.
EXPECTED
