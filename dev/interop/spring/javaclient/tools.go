package javaclient

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// tools checks that there are a JDK and Maven. As root on Debian it installs them. Package
// server installs the test servers in the same way, but it links database drivers and is only
// for tests.
func tools(ctx context.Context) error {
	missing := missingTools()
	if len(missing) == 0 {
		return nil
	}
	packages := []string{"maven", "default-jdk-headless"}
	advice := fmt.Sprintf("no %s; on Debian, as root: apt-get install --no-install-recommends %s",
		strings.Join(missing, ", no "), strings.Join(packages, " "))
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("%w: %s", ErrMissing, advice)
	}
	if err := install(ctx, packages); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrMissing, advice, err)
	}
	if missing := missingTools(); len(missing) > 0 {
		return fmt.Errorf("%w: no %s, even after the installation", ErrMissing, strings.Join(missing, ", no "))
	}
	return nil
}

func missingTools() (missing []string) {
	for _, program := range []string{"java", "javac", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	return missing
}

func install(ctx context.Context, packages []string) error {
	arguments := append([]string{"install", "--yes", "--no-install-recommends"}, packages...)
	if apt(ctx, arguments...) == nil {
		return nil
	}
	// On a new machine there are no package lists yet.
	if err := apt(ctx, "update"); err != nil {
		return err
	}
	return apt(ctx, arguments...)
}

// apt runs apt-get, and does not kill it when ctx ends: after that, the machine might be unable
// to install packages.
func apt(ctx context.Context, arguments ...string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Minute)
	defer cancel()
	arguments = append([]string{"-q", "-o", "DPkg::Lock::Timeout=300"}, arguments...)
	cmd := exec.CommandContext(ctx, "apt-get", arguments...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, output)
	}
	return nil
}
