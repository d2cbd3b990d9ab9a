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
        if (settings.text("update") != null) {
            repository.setUpdateQuery(settings.text("update"));
        }
    }

    static JdbcLockRegistry apply(JdbcLockRegistry registry, Settings settings) {
        if (settings.millis("idle") != null) {
            registry.setIdleBetweenTries(settings.millis("idle"));
        }
        if (settings.text("capacity") != null) {
            registry.setCacheCapacity(settings.number("capacity", 0));
        }
        return registry;
    }
}
