package trial

import (
	"sync"

	"farflash/experiment"
	"farflash/experiment/drive"
	"farflash/experiment/network"
	"farflash/experiment/objects"
	"farflash/experiment/system"
	"farflash/experiment/tiers"
	"farflash/experiment/traffic"
	"farflash/result"
)

// Vocabulary returns the names in results of all kinds of experiment, in their order in results. It is built once and
// must not be changed: a study of short runs would spend a fifth of its time on building it.
func Vocabulary() *result.Vocabulary { return vocabulary() }

var vocabulary = sync.OnceValue(func() *result.Vocabulary {
	return result.NewVocabulary(drive.Words(), network.Words(), system.Words(), objects.Operations(),
		traffic.Operations(), objects.Words(), traffic.Words(), tiers.Words(),
		objects.Bounds(), system.Iterations(), experiment.Words())
})
