package drives

import _ "embed" // the example

// Template is a commented plan to start from.
//
//go:embed template.yaml
var Template string
