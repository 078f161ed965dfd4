// Package examples contains scenarios that run in seconds, as starting points for new ones. Its test runs them all and
// verifies the statements in their comments.
package examples
