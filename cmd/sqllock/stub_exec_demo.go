package main

import "github.com/spf13/cobra"

func newExecCommand(*globals) *cobra.Command { return &cobra.Command{Use: "exec", Hidden: true} }
func newDemoCommand(*globals) *cobra.Command { return &cobra.Command{Use: "demo", Hidden: true} }
func newDemoWorkerCommand(*globals) *cobra.Command {
	return &cobra.Command{Use: "demo-worker", Hidden: true}
}
