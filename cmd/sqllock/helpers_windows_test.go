package main

var helperCommands map[string]func()
