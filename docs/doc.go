// Package docs is the documentation. Its tests run every command that a page or the
// README shows, follow every link, and compare the generated pages with their sources.
package docs
