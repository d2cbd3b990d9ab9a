// Package tests runs sqllock's adapters with the real libraries, in several processes and in virtual
// time. It is a module of its own, so that the library's module requires none of them.
package tests
