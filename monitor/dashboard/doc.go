// Package dashboard has a dashboard and alert rules for the metrics of sqllock, and the tests of
// those, of package sqllockprom and of package sqllockotel with the real libraries. It is a module of
// its own, so that these need not require what only tests use.
package dashboard
