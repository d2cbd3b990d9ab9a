package sqllock;

import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;
import java.time.zone.ZoneRulesProvider;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TimeZone;
import java.util.TreeMap;

/**
 * A default time zone whose clocks go forward by an hour from UTC at a given instant, as London's do on a Sunday in
 * March. One hour of local time does not exist.
 *
 * <p>The zone is called Europe/London, because the name is sent to PostgreSQL, which must know it. The JDK has its data twice, for
 * java.time and for the older classes such as java.sql.Timestamp, and permits no change of either, so the JVM needs
 * --add-opens for java.time.zone and sun.util.calendar.
 */
final class GapZone extends ZoneRulesProvider {
    private static final String NAME = "Europe/London";
    private static final ZoneOffset WINTER = ZoneOffset.UTC;
    private static final ZoneOffset SUMMER = ZoneOffset.ofHours(1);

    private final ZoneRules rules;

    private GapZone(Instant change) {
        LocalDateTime local = LocalDateTime.ofInstant(change, WINTER);
        rules = ZoneRules.of(WINTER, WINTER, List.of(), List.of(ZoneOffsetTransition.of(local, WINTER, SUMMER)), List.of());
    }

    static void become(String instant) throws ReflectiveOperationException {
        Instant change = Instant.parse(instant);
        replaceNew(new GapZone(change));
        TimeZone.setDefault(old(change));
    }

    @SuppressWarnings("unchecked")
    private static void replaceNew(ZoneRulesProvider provider) throws ReflectiveOperationException {
        Field zones = ZoneRulesProvider.class.getDeclaredField("ZONES");
        zones.setAccessible(true);
        ((Map<String, ZoneRulesProvider>) zones.get(null)).put(NAME, provider);
    }

    /** The zone as the JDK creates it from its own data. */
    private static TimeZone old(Instant change) throws ReflectiveOperationException {
        Class<?> rule = Class.forName("sun.util.calendar.ZoneInfoFile$ZoneOffsetTransitionRule");
        Method make = Class.forName("sun.util.calendar.ZoneInfoFile").getDeclaredMethod("getZoneInfo", String.class,
                long[].class, int[].class, long[].class, int[].class, rule.arrayType());
        make.setAccessible(true);
        int winter = WINTER.getTotalSeconds();
        return (TimeZone) make.invoke(null, NAME, new long[0], new int[] {winter}, new long[] {change.getEpochSecond()},
                new int[] {winter, SUMMER.getTotalSeconds()}, Array.newInstance(rule, 0));
    }

    @Override
    protected Set<String> provideZoneIds() {
        return Set.of(NAME);
    }

    @Override
    protected ZoneRules provideRules(String zone, boolean forCaching) {
        return rules;
    }

    @Override
    protected NavigableMap<String, ZoneRules> provideVersions(String zone) {
        return new TreeMap<>(Map.of("1", rules));
    }
}
