package sqllock;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;
import org.springframework.integration.jdbc.lock.LockRepository;

/**
 * Returns the LOCK_KEY of keys by locking them in a real registry whose repository only records the keys, since the
 * mapping itself is private in 6.5.
 */
final class KeyProbe {
    private KeyProbe() {}

    static Object[] mapped(List<String> keys) throws Exception {
        List<Object> asked = new ArrayList<>();
        JdbcLockRegistry registry = new JdbcLockRegistry(writingTo(asked));
        for (String key : keys) {
            registry.obtain(key).tryLock();
        }
        return asked.toArray();
    }

    private static LockRepository writingTo(List<Object> asked) {
        return (LockRepository) Proxy.newProxyInstance(KeyProbe.class.getClassLoader(), new Class<?>[] {LockRepository.class},
                (proxy, method, arguments) -> {
                    if (method.getName().equals("acquire")) {
                        asked.add(arguments[0]);
                    }
                    return method.getReturnType() == boolean.class ? true : null;
                });
    }
}
