package sqllock;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.locks.Lock;

/**
 * count KEY GOAL: increments an unprotected counter, under the lock of the key, until it has reached the goal. Answers
 * how often this thread has done so, and how often another one was in the critical section.
 *
 * <p>The table COUNTER has one row. VALUE is read and written in two steps; INSIDE is the number of callers between them.
 */
final class Counter {
    private final Client client;
    private final Lock lock;
    private final int goal;
    private int added;
    private int overlaps;

    private Counter(Client client, Lock lock, int goal) {
        this.client = client;
        this.lock = lock;
        this.goal = goal;
    }

    static Object[] run(Client client, Request request) throws SQLException {
        Lock lock = client.registry().obtain(request.argument(0));
        Counter counter = new Counter(client, lock, Integer.parseInt(request.argument(1)));
        counter.work();
        return new Object[] {counter.added, counter.overlaps};
    }

    private void work() throws SQLException {
        boolean more = true;
        while (more) {
            lock.lock();
            try {
                more = section();
            } finally {
                lock.unlock();
            }
        }
    }

    private boolean section() throws SQLException {
        // Not the connection of the lock. It commits each statement.
        try (Connection connection = client.pool().getConnection(); Statement statement = connection.createStatement()) {
            statement.executeUpdate("UPDATE COUNTER SET INSIDE = INSIDE + 1");
            int value = look(statement);
            boolean more = value < goal;
            statement.executeUpdate("UPDATE COUNTER SET INSIDE = INSIDE - 1, VALUE = " + (more ? value + 1 : value));
            added += more ? 1 : 0;
            return more;
        }
    }

    private int look(Statement statement) throws SQLException {
        try (ResultSet row = statement.executeQuery("SELECT VALUE, INSIDE FROM COUNTER")) {
            row.next();
            overlaps += row.getInt(2) == 1 ? 0 : 1;
            return row.getInt(1);
        }
    }
}
