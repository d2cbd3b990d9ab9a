// Package browser tests package page in a real browser. It is a module of its own, so that
// nothing of what drives the browser is among the requirements of sqllock.
package browser
