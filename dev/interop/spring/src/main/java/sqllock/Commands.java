package sqllock;

import java.util.Map;
import java.util.concurrent.TimeUnit;

/** The commands of a client. Keys come first; durations are milliseconds. */
final class Commands {
    private Commands() {}

    @FunctionalInterface
    interface Command {
        Object[] run(Client client, Request request) throws Exception;
    }

    private static final Map<String, Command> ALL = Map.ofEntries(
            Map.entry("lock", Commands::lock),
            Map.entry("trylock", Commands::tryLock),
            Map.entry("trykept", Commands::tryKept),
            Map.entry("unlock", Commands::unlock),
            Map.entry("renew", Commands::renew),
            Map.entry("hold", Commands::hold),
            Map.entry("status", Commands::status),
            Map.entry("count", Counter::run),
            Map.entry("campaign", Election::campaign),
            Map.entry("leads", Election::leads),
            Map.entry("yield", Election::yield),
            Map.entry("withdraw", Election::withdraw),
            Map.entry("bench", Bench::run),
            Map.entry("close", Commands::close));

    static Command find(String name) {
        Command command = ALL.get(name);
        if (command == null) {
            throw new IllegalArgumentException("no command " + name);
        }
        return command;
    }

    private static Object[] nothing() {
        return new Object[0];
    }

    /** lock KEY: waits without a limit. */
    private static Object[] lock(Client client, Request request) {
        client.registry().obtain(request.argument(0)).lock();
        return nothing();
    }

    /** trylock KEY WAIT: true or false. */
    private static Object[] tryLock(Client client, Request request) throws InterruptedException {
        return new Object[] {
            client.registry().obtain(request.argument(0)).tryLock(request.millis(1), TimeUnit.MILLISECONDS)
        };
    }

    /** trykept KEY: tryLock() of a handle that the client keeps for the key. */
    private static Object[] tryKept(Client client, Request request) {
        return new Object[] {client.kept(request.argument(0)).tryLock()};
    }

    /** unlock KEY. */
    private static Object[] unlock(Client client, Request request) {
        client.registry().obtain(request.argument(0)).unlock();
        return nothing();
    }

    /** renew KEY. */
    private static Object[] renew(Client client, Request request) {
        client.registry().renewLock(request.argument(0));
        return nothing();
    }

    /** hold KEY DURATION EVERY: renews a lock of this thread repeatedly, and answers the number of renewals. */
    private static Object[] hold(Client client, Request request) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(request.millis(1));
        int renewals = 0;
        for (; System.nanoTime() < end; renewals++) {
            Thread.sleep(request.millis(2));
            client.registry().renewLock(request.argument(0));
        }
        return new Object[] {renewals};
    }

    /** status KEY: whether the repository still has the row. */
    private static Object[] status(Client client, Request request) throws Exception {
        String path = KeyProbe.mapped(request.arguments().subList(0, 1))[0].toString();
        return new Object[] {client.repository().isAcquired(path)};
    }

    /** close: shuts the application down. */
    private static Object[] close(Client client, Request request) {
        client.close();
        return nothing();
    }
}
