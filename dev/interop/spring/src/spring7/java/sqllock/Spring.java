package sqllock;

import javax.sql.DataSource;
import org.springframework.integration.jdbc.lock.DefaultLockRepository;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;

/** How Spring Integration 7 is set up: the registry has the time-to-live. */
final class Spring {
    private Spring() {}

    /** The version of the jar. */
    static String version() {
        return DefaultLockRepository.class.getPackage().getImplementationVersion();
    }

    static DefaultLockRepository repository(DataSource pool, Settings settings) {
        DefaultLockRepository repository =
                settings.text("client") == null ? new DefaultLockRepository(pool) : new DefaultLockRepository(pool, settings.text("client"));
        Tuning.apply(repository, settings);
        return repository;
    }

    static JdbcLockRegistry registry(DefaultLockRepository repository, Settings settings) {
        JdbcLockRegistry registry =
                settings.millis("ttl") == null ? new JdbcLockRegistry(repository) : new JdbcLockRegistry(repository, settings.millis("ttl"));
        return Tuning.apply(registry, settings);
    }
}
