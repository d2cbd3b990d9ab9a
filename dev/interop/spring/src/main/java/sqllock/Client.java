package sqllock;

import com.zaxxer.hikari.HikariDataSource;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.Lock;
import java.util.function.Supplier;
import javax.sql.DataSource;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.integration.jdbc.lock.DefaultLockRepository;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;
import org.springframework.integration.support.leader.LockRegistryLeaderInitiator;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;

/** An application as in a service: a pool, a context with Spring's own beans, and threads by name. */
final class Client {
    private final Settings settings;
    private final HikariDataSource pool;
    private final GenericApplicationContext context = new GenericApplicationContext();
    private final JdbcLockRegistry registry;
    private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();
    private final Map<String, Lock> kept = new ConcurrentHashMap<>();
    private volatile LockRegistryLeaderInitiator initiator; // or null

    Client(Settings settings) {
        this.settings = settings;
        pool = Pool.open(settings);
        register(DataSource.class, () -> pool);
        register(PlatformTransactionManager.class, () -> new JdbcTransactionManager(pool));
        register(DefaultLockRepository.class, () -> Spring.repository(pool, settings));
        register(JdbcLockRegistry.class, () -> Spring.registry(repository(), settings));
        try {
            context.refresh(); // starts the repository, which checks the table
        } catch (RuntimeException e) {
            pool.close();
            throw e;
        }
        registry = context.getBean(JdbcLockRegistry.class);
    }

    private <T> void register(Class<T> type, Supplier<T> supplier) {
        context.registerBean(type, supplier);
    }

    DefaultLockRepository repository() {
        return context.getBean(DefaultLockRepository.class);
    }

    JdbcLockRegistry registry() {
        return registry;
    }

    /** The handle that was the first to be obtained here for the key. */
    Lock kept(String key) {
        return kept.computeIfAbsent(key, registry::obtain);
    }

    GenericApplicationContext context() {
        return context;
    }

    LockRegistryLeaderInitiator initiator() {
        return initiator;
    }

    void setInitiator(LockRegistryLeaderInitiator started) {
        initiator = started;
    }

    HikariDataSource pool() {
        return pool;
    }

    Settings settings() {
        return settings;
    }

    void onThread(String name, Runnable work) {
        threads.computeIfAbsent(name, n -> Executors.newSingleThreadExecutor(r -> {
            Thread thread = new Thread(r, n);
            thread.setDaemon(true);
            return thread;
        })).execute(work);
    }

    Object[] run(Request request) throws Exception {
        return Commands.find(request.command()).run(this, request);
    }

    void close() {
        if (initiator != null) {
            initiator.stop();
        }
        context.close();
        pool.close();
    }
}
