package doctor

import (
	"context"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/monitor/page"
)

// Findings returns the checks of the command as package page shows them.
func Findings(flags *connect.Flags) func(context.Context) ([]page.Finding, error) {
	return func(ctx context.Context) ([]page.Finding, error) {
		findings, err := examine(ctx, flags)
		shown := make([]page.Finding, len(findings))
		for i, f := range findings {
			shown[i] = page.Finding{Severity: []page.Severity{page.Good, page.Note, page.Broken}[f.severity], Subject: f.subject, Text: f.text, Advice: f.advice}
		}
		return shown, err
	}
}
