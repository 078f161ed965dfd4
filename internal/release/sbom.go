package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// bom and the types below are the parts of CycloneDX 1.6 (ECMA-424) that list a program's components.
type (
	bom struct {
		Format     string      `json:"bomFormat"`
		Spec       string      `json:"specVersion"`
		Version    int         `json:"version"`
		Metadata   metadata    `json:"metadata"`
		Components []component `json:"components"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		Version string `json:"version"`
		PURL    string `json:"purl"`
		Hashes  []hash `json:"hashes,omitempty"`
	}
	hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
)

// components lists the modules that a program was built from, and Go's standard library, from the program's build
// information.
func components(info *buildinfo.BuildInfo, at time.Time) ([]byte, error) {
	x := bom{Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata: metadata{at.Format(time.RFC3339), module("application", info.Main.Path, info.Main.Version)}}
	std := module("library", "stdlib", strings.TrimPrefix(info.GoVersion, "go"))
	x.Components = append(x.Components, std)
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		c := module("library", d.Path, d.Version)
		// go.sum's h1 is the SHA-256, in base64, of the list of the module's files with their SHA-256.
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(d.Sum, "h1:"))
		if err != nil || len(sum) != 32 {
			return nil, fmt.Errorf("module %s has the sum %q; want h1 and 32 bytes", d.Path, d.Sum)
		}
		c.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum)}}
		x.Components = append(x.Components, c)
	}
	text, err := json.MarshalIndent(x, "", "  ")
	return append(text, '\n'), err
}

func module(kind, path, version string) component {
	return component{Type: kind, Name: path, Version: version, PURL: "pkg:golang/" + path + "@" + version}
}
