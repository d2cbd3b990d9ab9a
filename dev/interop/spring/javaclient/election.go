package javaclient

import "context"

// Campaign starts a LockRegistryLeaderInitiator for a role, over the client's registry. A client
// has one at a time.
func (c *Client) Campaign(ctx context.Context, role string) error {
	_, err := c.jvm.call(ctx, c.name, "election", "campaign", role)
	return err
}

// Leads reports whether the client is the leader, as its initiator's Context says.
func (c *Client) Leads(ctx context.Context) (bool, error) {
	return boolean(c.jvm.call(ctx, c.name, "election", "leads"))
}

// Yield has others lead. The client goes on campaigning.
func (c *Client) Yield(ctx context.Context) error {
	_, err := c.jvm.call(ctx, c.name, "election", "yield")
	return err
}

// Withdraw stops the initiator, which releases the lock if it leads.
func (c *Client) Withdraw(ctx context.Context) error {
	_, err := c.jvm.call(ctx, c.name, "election", "withdraw")
	return err
}
