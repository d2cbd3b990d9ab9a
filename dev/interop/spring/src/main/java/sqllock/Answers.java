package sqllock;

import java.io.PrintStream;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Callable;

/** Writes "NUMBER ok VALUE..." or "NUMBER error CLASS MESSAGE", with fields encoded as in a request. */
final class Answers {
    private final PrintStream out;

    Answers(PrintStream out) {
        this.out = out;
    }

    void answer(Request request, Callable<Object[]> work) {
        try {
            write(request, "ok", work.call());
        } catch (Throwable e) { // also an Error, since the client waits for an answer
            error(request, e);
        }
    }

    void error(Request request, Throwable e) {
        write(request, "error", e.getClass().getName(), trail(e));
    }

    /** The messages of an exception and of all its causes, since Spring wraps the original exceptions. */
    private static String trail(Throwable e) {
        String message = String.valueOf(e.getMessage());
        return e.getCause() == null ? message : message + "; " + e.getCause().getClass().getName() + ": " + trail(e.getCause());
    }

    private synchronized void write(Request request, String kind, Object... fields) {
        StringBuilder line = new StringBuilder(request.number()).append(' ').append(kind);
        for (Object field : fields) {
            line.append(' ').append(URLEncoder.encode(String.valueOf(field), StandardCharsets.UTF_8));
        }
        out.println(line);
        out.flush();
    }
}
