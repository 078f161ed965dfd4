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

// Vocabulary is the names that results of all kinds of experiment have, in the order in which results have them. It
// is made once and nobody changes it: a study of short runs would spend a fifth of its time on making it.
func Vocabulary() *result.Vocabulary { return vocabulary() }

var vocabulary = sync.OnceValue(func() *result.Vocabulary {
	return result.NewVocabulary(drive.Words(), network.Words(), system.Words(), objects.Operations(),
		traffic.Operations(), objects.Words(), traffic.Words(), tiers.Words(),
		objects.Bounds(), system.Iterations(), experiment.Words())
})
