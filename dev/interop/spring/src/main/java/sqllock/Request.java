package sqllock;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/**
 * One line: number, client, thread, command and arguments, separated by blanks, each encoded as in a URL's query.
 * Spring's locks belong to threads, so a request names the thread on which it runs.
 */
record Request(String number, String client, String thread, String command, List<String> arguments) {
    static Request parse(String line) {
        List<String> fields = Arrays.stream(line.split(" ", -1)).map(f -> URLDecoder.decode(f, StandardCharsets.UTF_8)).toList();
        return new Request(fields.get(0), fields.get(1), fields.get(2), fields.get(3), fields.subList(4, fields.size()));
    }

    String argument(int i) {
        return arguments.get(i);
    }

    long millis(int i) {
        return Long.parseLong(argument(i));
    }
}
