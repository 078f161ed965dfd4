package training

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"farflash/policy/forest"
	"farflash/policy/ratecontrol"
	"farflash/result"
	"farflash/scenario"
	"farflash/study"
)

// Trainer trains the models for scenarios with model: auto, each once, and stores them in the cache of its runner. It
// is safe for concurrent use; while one goroutine trains, others that need a model wait.
type Trainer struct {
	cfg    Config
	runner study.Runner
	// OnStart, if not nil, is called before the model of a drive is trained.
	OnStart func(drive string)

	mu     sync.Mutex
	models map[string][]byte // files, by name
}

// NewTrainer returns a trainer with a configuration and a runner, whose Folder and Execute must be unset.
func NewTrainer(cfg Config, runner study.Runner) *Trainer {
	return &Trainer{cfg: cfg, runner: runner, models: map[string][]byte{}}
}

// under is the training for queues of a partition, whatever that of the configuration.
func (t *Trainer) under(p ratecontrol.Partition) Config {
	cfg := t.cfg
	cfg.Partition = p
	return cfg
}

// Name identifies the model of a drive among all models of this program: it is derived from the digest of the drive and
// of the training.
func (t *Trainer) Name(drive *scenario.Drive, p ratecontrol.Partition) (string, error) {
	cfg := t.under(p)
	b, err := base(drive, &cfg)
	if err != nil {
		return "", err
	}
	digest, err := b.Digest()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %+v", digest, cfg))
	return hex.EncodeToString(sum[:16]), nil
}

// Path returns the cache path of a drive's model; "" without a cache.
func (t *Trainer) Path(drive *scenario.Drive, p ratecontrol.Partition) (string, error) {
	name, err := t.Name(drive, p)
	if err != nil || t.runner.Cache == nil {
		return "", err
	}
	return t.runner.Cache.Path("models/" + name + ".forest"), nil
}

// File returns the model of a drive, whose depth is partitioned, as a file's bytes, from the cache or by training.
func (t *Trainer) File(ctx context.Context, drive *scenario.Drive, p ratecontrol.Partition) ([]byte, error) {
	cfg := t.under(p)
	name, err := t.Name(drive, p)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if b, ok := t.models[name]; ok {
		return b, nil
	}
	path, err := t.Path(drive, p)
	if err != nil {
		return nil, err
	}
	if b := t.kept(path); b != nil {
		t.models[name] = b
		return b, nil
	}
	about := drive.Preset
	if about == "" {
		about = name
	}
	if t.OnStart != nil {
		t.OnStart(about)
	}
	set, err := Sweep(ctx, t.runner, drive, cfg)
	if err != nil {
		return nil, fmt.Errorf("training a model of the drive: %w", err)
	}
	f, err := set.Grow(name, &cfg, t.runner.Workers)
	if err != nil {
		return nil, err
	}
	b := f.Encode()
	if path != "" {
		t.warn(result.WriteFile(path, b)) // the model is usable without being cached
	}
	t.models[name] = b
	return b, nil
}

// kept returns a valid model from the cache, or nil.
func (t *Trainer) kept(path string) []byte {
	if path == "" {
		return nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = forest.Decode(b)
	}
	if err != nil {
		t.warn(fmt.Errorf("cache: %s: %w", path, err))
		return nil
	}
	return b
}

func (t *Trainer) warn(err error) {
	if err != nil && t.runner.Warn != nil {
		t.runner.Warn(err)
	}
}

// Predict returns a function for experiment.Options that returns a drive's predictor. Training stops with the context.
func (t *Trainer) Predict(
	ctx context.Context) func(*scenario.Drive, ratecontrol.Partition) (ratecontrol.Predictor, error) {
	return func(drive *scenario.Drive, p ratecontrol.Partition) (ratecontrol.Predictor, error) {
		b, err := t.File(ctx, drive, p)
		if err != nil {
			return nil, err
		}
		f, err := forest.Decode(b)
		if err != nil {
			return nil, err
		}
		return ratecontrol.NewModel(f)
	}
}

// Evaluate reports the accuracy of models of a drive, whose depth is partitioned, trained and tested on the samples of
// a seed.
func (t *Trainer) Evaluate(ctx context.Context, drive *scenario.Drive, p ratecontrol.Partition,
	seed uint64) (*Report, error) {
	cfg := t.under(p)
	cfg.Seed = seed
	set, err := Sweep(ctx, t.runner, drive, cfg)
	if err != nil {
		return nil, err
	}
	return set.Evaluate(ctx, &cfg, t.runner.Workers)
}
