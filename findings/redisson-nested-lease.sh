#!/usr/bin/env bash
# Redisson 4.7.0 (Java), RLock, over Redis 6.2.14.
#
# Expected: the lock is reentrant, as its documentation says, so a method that locks it once more, for two seconds, and
# unlocks it again, leaves its caller with what the caller has acquired: a lease of five minutes, or, without a lease
# time, a lock that the watchdog renews until unlock().
# Seen: the inner lock sets the time-to-live of the whole lock to two seconds, and its unlock() does not give back the
# caller's. Under a watchdog, too, the renewal ends with the inner lock. Three seconds later a rival acquires the lock while the
# caller is at work; the caller finds out by an IllegalMonitorStateException of its own unlock().
. "$(dirname "$0")/common.sh"

redis_server
jars org.redisson:redisson:4.7.0 org.slf4j:slf4j-nop:2.0.17
cat >Nested.java <<'JAVA'
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

class Nested {
    static RedissonClient connect() {
        var config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + System.getenv("REDIS_PORT"));
        return Redisson.create(config);
    }

    static void inner(RLock lock) throws InterruptedException {
        if (!lock.tryLock(0, 2, TimeUnit.SECONDS)) {
            throw new AssertionError("the lock is not reentrant");
        }
        lock.unlock();
    }

    public static void main(String[] arguments) throws InterruptedException {
        var holder = connect();
        var other = connect();
        for (String name : new String[] {"five minutes", "five minutes, with a nested lock", "watchdog", "watchdog, with a nested lock"}) {
            var lock = holder.getLock(name);
            var rival = other.getLock(name);
            if (name.startsWith("watchdog")) {
                lock.lock();
            } else {
                lock.lock(5, TimeUnit.MINUTES);
            }
            if (name.endsWith("nested lock")) {
                inner(lock);
            }
            Thread.sleep(4000); // the caller's work
            boolean acquired = rival.tryLock(0, 1, TimeUnit.MINUTES);
            String end = "succeeds";
            try {
                lock.unlock();
            } catch (IllegalMonitorStateException e) {
                end = "throws IllegalMonitorStateException";
            }
            System.out.println(name + ": a rival " + (acquired ? "acquires the lock" : "is refused") + ", the holder's unlock() " + end);
        }
        holder.shutdown();
        other.shutdown();
    }
}
JAVA
REDIS_PORT=$REDIS_PORT timeout 120 java -cp 'lib/*' Nested.java >seen 2>errors || { tail -20 errors; exit 1; }
compare seen <<'EXPECTED'
five minutes: a rival is refused, the holder's unlock() succeeds
five minutes, with a nested lock: a rival acquires the lock, the holder's unlock() throws IllegalMonitorStateException
watchdog: a rival is refused, the holder's unlock() succeeds
watchdog, with a nested lock: a rival acquires the lock, the holder's unlock() throws IllegalMonitorStateException
EXPECTED
