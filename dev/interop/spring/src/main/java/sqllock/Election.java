package sqllock;

import org.springframework.integration.leader.DefaultCandidate;
import org.springframework.integration.support.leader.LockRegistryLeaderInitiator;

/** The commands about Spring's own leader election over the lock registry of a client. */
final class Election {
    private Election() {}

    /** campaign ROLE: starts to campaign. */
    static Object[] campaign(Client client, Request request) {
        LockRegistryLeaderInitiator initiator =
                new LockRegistryLeaderInitiator(client.registry(), new DefaultCandidate("java", request.argument(0)));
        initiator.setApplicationEventPublisher(client.context());
        initiator.start();
        client.setInitiator(initiator);
        return new Object[0];
    }

    /** leads: true or false. */
    static Object[] leads(Client client, Request request) {
        return new Object[] {client.initiator().getContext().isLeader()};
    }

    /** yield: has others lead, and campaigns again. */
    static Object[] yield(Client client, Request request) {
        client.initiator().getContext().yield();
        return new Object[0];
    }

    /** withdraw: campaigns no more. */
    static Object[] withdraw(Client client, Request request) {
        client.initiator().stop();
        return new Object[0];
    }
}
