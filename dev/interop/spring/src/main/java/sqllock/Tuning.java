package sqllock;

import org.springframework.integration.jdbc.lock.DefaultLockRepository;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;

/** The settings that both generations have. */
final class Tuning {
    private Tuning() {}

    static void apply(DefaultLockRepository repository, Settings settings) {
        if (settings.text("region") != null) {
            repository.setRegion(settings.text("region"));
        }
    }

    static JdbcLockRegistry apply(JdbcLockRegistry registry, Settings settings) {
        if (settings.millis("idle") != null) {
            registry.setIdleBetweenTries(settings.millis("idle"));
        }
        return registry;
    }
}
