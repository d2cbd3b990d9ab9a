//go:build !linux

package main

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }
