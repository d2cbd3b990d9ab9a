package sqllock;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The settings of a client, as NAME=VALUE. Missing settings are Spring's defaults. */
record Settings(Map<String, String> values) {
    static Settings parse(List<String> arguments) {
        Map<String, String> values = new HashMap<>();
        for (String argument : arguments) {
            String[] parts = argument.split("=", 2);
            values.put(parts[0], parts[1]);
        }
        return new Settings(values);
    }

    String text(String name) {
        return values.get(name);
    }

    Duration millis(String name) {
        return values.containsKey(name) ? Duration.ofMillis(Long.parseLong(values.get(name))) : null;
    }

    int number(String name, int otherwise) {
        return Integer.parseInt(values.getOrDefault(name, String.valueOf(otherwise)));
    }
}
