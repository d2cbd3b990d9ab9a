package main

import "github.com/spf13/cobra"

func newDemoCommand(*globals) *cobra.Command { return &cobra.Command{Use: "demo", Hidden: true} }
func newDemoWorkerCommand(*globals) *cobra.Command {
	return &cobra.Command{Use: "demo-worker", Hidden: true}
}
