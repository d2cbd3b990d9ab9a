package cli

import (
	_ "embed"
	"io"

	"github.com/spf13/cobra"
)

// bashAlone replaces the function of cobra's script that needs the package bash-completion: Bash of a container, and of a
// Mac, lacks it, and each Tab printed an error.
//
//go:embed bash_alone.sh
var bashAlone string

// completeWithoutPackage makes the script of `completion bash` work without the package bash-completion.
func completeWithoutPackage(root *cobra.Command) {
	root.InitDefaultCompletionCmd() // which has its output from now on
	bash, _, err := root.Find([]string{"completion", "bash"})
	if err != nil || bash.RunE == nil {
		return
	}
	write := bash.RunE
	bash.RunE = func(cmd *cobra.Command, args []string) error {
		if err := write(cmd, args); err != nil {
			return err
		}
		_, err := io.WriteString(cmd.OutOrStdout(), bashAlone)
		return err
	}
}
