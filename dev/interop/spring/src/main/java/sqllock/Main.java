package sqllock;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Reads requests from stdin and writes answers to stdout, one per line, until "quit" or the end of stdin. */
public final class Main {
    private final Map<String, Client> clients = new ConcurrentHashMap<>();
    private final Answers answers = new Answers(System.out);

    public static void main(String[] arguments) throws IOException, ReflectiveOperationException {
        for (String argument : arguments) {
            if (argument.startsWith("gap=")) {
                GapZone.become(argument.substring("gap=".length()));
            }
        }
        new Main().serve(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)));
        // Threads that wait for a lock would keep the process alive, and lock() cannot be interrupted.
        Runtime.getRuntime().halt(0);
    }

    private void serve(BufferedReader in) throws IOException {
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Request request = Request.parse(line);
            switch (request.command()) {
                case "quit" -> {
                    return;
                }
                case "version" -> answers.answer(request, () -> new Object[] {Spring.version()});
                case "key" -> answers.answer(request, () -> KeyProbe.mapped(request.arguments()));
                // A thread of its own, because a client waits for its database.
                case "open" -> new Thread(() -> answers.answer(request, () -> open(request))).start();
                default -> dispatch(request);
            }
        }
    }

    private Object[] open(Request request) {
        Client client = new Client(Settings.parse(request.arguments()));
        clients.put(request.client(), client);
        return new Object[0];
    }

    private void dispatch(Request request) {
        Client client = clients.get(request.client());
        if (client == null) {
            answers.error(request, new IllegalArgumentException("no client " + request.client()));
            return;
        }
        client.onThread(request.thread(), () -> answers.answer(request, () -> client.run(request)));
    }
}
