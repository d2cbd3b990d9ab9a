// Package systems has a file for another system.
package systems
