// Package examples holds scenarios that run in seconds, each a start for one's own.
// Its test runs them all and holds what their comments promise.
package examples
