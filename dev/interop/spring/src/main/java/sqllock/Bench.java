package sqllock;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Lock;

/**
 * bench THREADS SECONDS: locks and unlocks without a pause. Each thread has its own key, so none waits. Answers pairs,
 * failures, the milliseconds that it took, and the median and the 99th percentile of a pair in microseconds.
 *
 * <p>The client configures Spring (pool, pause between tries, statements): see {@link Settings} and {@link Spring}.
 */
final class Bench {
    private final Client client;
    private final long end;
    private final AtomicLong failures = new AtomicLong();

    private Bench(Client client, long end) {
        this.client = client;
        this.end = end;
    }

    static Object[] run(Client client, Request request) throws Exception {
        int threads = Integer.parseInt(request.argument(0));
        long began = System.nanoTime();
        long seconds = Math.round(Double.parseDouble(request.argument(1)) * TimeUnit.SECONDS.toNanos(1));
        Bench bench = new Bench(client, began + seconds);
        long[] times = bench.measure(threads).stream().mapToLong(Long::longValue).sorted().toArray();
        long took = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
        return new Object[] {times.length, bench.failures, took, percentile(times, 50), percentile(times, 99)};
    }

    private List<Long> measure(int threads) throws Exception {
        ExecutorService workers = Executors.newFixedThreadPool(threads);
        try {
            List<Callable<List<Long>>> work = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                int own = i;
                work.add(() -> pairs(own));
            }
            List<Long> all = new ArrayList<>();
            for (Future<List<Long>> times : workers.invokeAll(work)) {
                all.addAll(times.get());
            }
            return all;
        } finally {
            workers.shutdown();
        }
    }

    private List<Long> pairs(int own) {
        List<Long> times = new ArrayList<>();
        for (long began = System.nanoTime(); began < end; began = System.nanoTime()) {
            if (pair(own)) {
                times.add(TimeUnit.NANOSECONDS.toMicros(System.nanoTime() - began));
            } else {
                failures.incrementAndGet();
            }
        }
        return times;
    }

    private boolean pair(int key) {
        Lock lock = client.registry().obtain("bench/" + key);
        try {
            lock.lock();
            lock.unlock();
            return true;
        } catch (RuntimeException e) {
            return false; // counted: it is the number that tells, not the single one
        }
    }

    private static long percentile(long[] sorted, int percent) {
        return sorted.length == 0 ? 0 : sorted[(int) ((sorted.length - 1L) * percent / 100)];
    }
}
