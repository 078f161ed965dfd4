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

// Trainer makes the models that scenarios ask for with model: auto, each once, and keeps them in the cache of its
// runner. Any number of goroutines may use it; while one trains, the others that need a model wait.
type Trainer struct {
	cfg    Config
	runner study.Runner
	// Began is told of a drive whose model is not there, before it is trained; nil is nobody.
	Began func(drive string)

	mu     sync.Mutex
	models map[string][]byte // files, by name
}

// NewTrainer trains with a configuration and a runner, which has neither a folder nor an execution of its own.
func NewTrainer(cfg Config, runner study.Runner) *Trainer {
	return &Trainer{cfg: cfg, runner: runner, models: map[string][]byte{}}
}

// Name tells the model of a drive from all others that this program makes: it is made of the digest of a drive, and
// of how it is trained.
func (t *Trainer) Name(drive *scenario.Drive) (string, error) {
	b, err := base(drive, &t.cfg)
	if err != nil {
		return "", err
	}
	digest, err := b.Digest()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %+v", digest, t.cfg))
	return hex.EncodeToString(sum[:16]), nil
}

// Path is where the cache keeps the model of a drive; "" without a cache.
func (t *Trainer) Path(drive *scenario.Drive) (string, error) {
	name, err := t.Name(drive)
	if err != nil || t.runner.Cache == nil {
		return "", err
	}
	return t.runner.Cache.Path("models/" + name + ".forest"), nil
}

// File is the model of a drive as a file's bytes. It is taken from the cache, or trained.
func (t *Trainer) File(ctx context.Context, drive *scenario.Drive) ([]byte, error) {
	name, err := t.Name(drive)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if b, ok := t.models[name]; ok {
		return b, nil
	}
	path, err := t.Path(drive)
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
	if t.Began != nil {
		t.Began(about)
	}
	set, err := Sweep(ctx, t.runner, drive, t.cfg)
	if err != nil {
		return nil, fmt.Errorf("training a model of the drive: %w", err)
	}
	f, err := set.Grow(name, &t.cfg, t.runner.Workers)
	if err != nil {
		return nil, err
	}
	b := f.Encode()
	if path != "" {
		t.warn(result.WriteFile(path, b)) // the model is no worse for not being kept
	}
	t.models[name] = b
	return b, nil
}

// kept is a model that the cache has and that is whole.
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

// Predict is what experiment.Options take: a function that finds what foresees a drive. Training ends with the context.
func (t *Trainer) Predict(ctx context.Context) func(*scenario.Drive) (ratecontrol.Predictor, error) {
	return func(drive *scenario.Drive) (ratecontrol.Predictor, error) {
		b, err := t.File(ctx, drive)
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

// Evaluate says how well models of a drive foresee it, trained and tested on the samples of a seed.
func (t *Trainer) Evaluate(ctx context.Context, drive *scenario.Drive, seed uint64) (*Report, error) {
	cfg := t.cfg
	cfg.Seed = seed
	set, err := Sweep(ctx, t.runner, drive, cfg)
	if err != nil {
		return nil, err
	}
	return set.Evaluate(ctx, &cfg, t.runner.Workers)
}
