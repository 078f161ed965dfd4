package scenario

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strings"

	"farflash/internal/spelling"
	"farflash/scenario/shape"
)

// presets are complete scenarios that are part of the program. Each can be run, and those with an ssd section can be
// named as a drive.
//
//go:embed presets/*.yaml
var presets embed.FS

// Preset names a scenario that is part of the program.
type Preset struct {
	Name        string
	Description string
}

// Presets lists the presets by name.
func Presets() []Preset {
	entries, err := presets.ReadDir("presets")
	if err != nil {
		panic(err) // the directory is embedded
	}
	var out []Preset
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".yaml")
		text, _ := presetText(name)
		p := Preset{Name: name}
		for line := range strings.Lines(string(text)) {
			if d, ok := strings.CutPrefix(line, "description: "); ok {
				p.Description = strings.Trim(strings.TrimSpace(d), `"`)
			}
		}
		out = append(out, p)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// PresetText returns a preset's source text, with its comments.
func PresetText(name string) (string, error) {
	if text, ok := presetText(name); ok {
		return string(text), nil
	}
	return "", noSuchPreset(name)
}

func presetText(name string) ([]byte, bool) {
	text, err := presets.ReadFile("presets/" + name + ".yaml")
	return text, err == nil
}

func presetNames() []string {
	var names []string
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	return names
}

// driveNames lists the presets that contain a drive.
func driveNames() []string {
	return slices.DeleteFunc(presetNames(), func(name string) bool {
		text, _ := presetText(name)
		top, err := shape.Parse(name+".yaml", text)
		return err != nil || top.Get("ssd") == nil
	})
}

func noSuchPreset(name string) error {
	if best := spelling.Nearest(name, presetNames()); best != "" {
		return fmt.Errorf("no preset %q; did you mean %s?", name, best)
	}
	return fmt.Errorf("no preset %q; there are %s", name, spelling.OrList(presetNames()))
}

// noSuchScenario is the error for a name that is neither a file nor a preset.
func noSuchScenario(name string) error {
	if strings.ContainsAny(name, `/\`) || hasYAMLSuffix(name) {
		return fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return fmt.Errorf("no file and %w", noSuchPreset(name))
}

// WithoutDrive is the error for a scenario, named by what, without a drive.
func WithoutDrive(what string) error {
	return fmt.Errorf("%s is a network without a drive; presets with one are %s", what, spelling.OrList(driveNames()))
}

// PresetDrive returns the drive of a preset.
func PresetDrive(name string) (Drive, error) {
	var x Drive
	text, ok := presetText(name)
	if !ok {
		return x, noSuchPreset(name)
	}
	top, err := shape.Parse(name+".yaml", text)
	if err != nil {
		return x, err
	}
	section := top.Get("ssd")
	if section == nil {
		return x, WithoutDrive("the preset " + name)
	}
	d := language.Decoder()
	d.Decode(section, &x, "ssd")
	if len(d.Errs) > 0 {
		return x, d.Errs
	}
	return x, nil
}
