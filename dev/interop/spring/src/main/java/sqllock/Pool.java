package sqllock;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;

/** The pool that Spring Boot creates: Hikari, with ten connections by default. */
final class Pool {
    private Pool() {}

    static HikariDataSource open(Settings settings) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(settings.text("url"));
        config.setUsername(settings.text("user"));
        config.setPassword(settings.text("password"));
        config.setMaximumPoolSize(settings.number("pool", 10));
        // It grows on demand: tests open many clients, and most use few connections.
        config.setMinimumIdle(1);
        return new HikariDataSource(config);
    }
}
