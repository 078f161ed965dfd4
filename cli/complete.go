package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/scenario"
	"farflash/workload/trace"
)

// completeScenario completes presets and files.
func completeScenario(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, x := range scenario.Presets() {
		if strings.HasPrefix(x.Name, prefix) {
			out = append(out, x.Name+"\t"+x.Description)
		}
	}
	return out, cobra.ShellCompDirectiveDefault
}

// completePreset completes presets only.
func completePreset(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	out, _ := completeScenario(cmd, nil, prefix)
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeFormat completes trace formats.
func completeFormat(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, f := range trace.Formats() {
		out = append(out, f.String()+"\t"+f.Layout())
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completePath completes the keys at the path typed so far.
func completePath(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	none := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	if strings.Contains(prefix, "=") || len(args) > 1 {
		return nil, none
	}
	at := ""
	if i := strings.LastIndexByte(prefix, '.'); i >= 0 {
		at = prefix[:i]
	}
	d, err := scenario.Describe(at)
	if err != nil {
		return nil, none
	}
	var out []string
	for _, k := range d.Keys {
		key := k.Path[strings.LastIndexByte(k.Path, '.')+1:]
		if at != "" {
			key = at + "." + key
		}
		if strings.HasPrefix(key, prefix) {
			out = append(out, key+"\t"+k.Value)
		}
	}
	return out, none
}

func (p *program) completion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion " + strings.Join(shells, "|"),
		Short: "Print a shell's completion script",
		Long:  "Print a shell's completion script.",
		Example: `  source <(farflash completion bash)
  farflash completion zsh > "${fpath[1]}/_farflash"`,
		Args:      verb.Arguments(1, 1, "one of "+strings.Join(shells, ", ")),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return verb.Failed(root.GenBashCompletionV2(p.data, true))
			case "zsh":
				return verb.Failed(root.GenZshCompletion(p.data))
			case "fish":
				return verb.Failed(root.GenFishCompletion(p.data, true))
			case "powershell":
				return verb.Failed(root.GenPowerShellCompletionWithDesc(p.data))
			}
			return verb.Usagef("no completion for %q; use one of %s", args[0], strings.Join(shells, ", "))
		},
	}
}
