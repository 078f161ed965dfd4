package drives

import _ "embed" // the example

// Template is a commented example plan.
//
//go:embed template.yaml
var Template string
