package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"

	"farflash/flash/nvme/chap"
	"farflash/flash/wire"
)

// Secrets are what the server and its clients prove with who they are, as in Config.
type Secrets struct {
	TLS   *tls.Config
	Token []byte
	Keys  map[string]chap.Keys
}

// proofs are the secrets in force.
type proofs struct {
	tls   *tls.Config // nil: no TLS
	token [sha256.Size]byte
}

// newProofs completes the secrets.
func newProofs(x Secrets) *proofs {
	p := &proofs{token: sha256.Sum256(x.Token)}
	if x.TLS != nil {
		p.tls = x.TLS.Clone()
		p.tls.MinVersion = tls.VersionTLS13
		p.tls.SessionTicketsDisabled = true // a client must not be known by a certificate of before a Reload
		if p.tls.ClientCAs != nil {
			p.tls.ClientAuth = tls.RequireAndVerifyClientCert
		}
	}
	return p
}

// secret returns the TLS configuration for listeners: each handshake uses the secrets that are then in force.
func (s *Server) secret() *tls.Config {
	if s.proofs.Load().tls == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.proofs.Load().tls, nil }}
}

// Reload replaces the secrets, for connections from now on. What the server demands of clients must stay the same.
func (s *Server) Reload(x Secrets) error {
	c := &s.cfg
	switch {
	case (x.TLS == nil) != (c.TLS == nil), (x.Token == nil) != (c.Token == nil), (x.Keys == nil) != (c.Keys == nil),
		x.TLS != nil && (x.TLS.ClientCAs == nil) != (c.TLS.ClientCAs == nil):
		return errors.New("server: kinds of proof cannot be added or taken away; start the server again")
	case x.Token != nil:
		if err := checkToken(x.Token); err != nil {
			return err
		}
	}
	s.proofs.Store(newProofs(x))
	if s.spaces != nil {
		return s.spaces.rekey(x.Keys)
	}
	return nil
}

// checkToken validates a token.
func checkToken(token []byte) error {
	if len(token) < 16 || len(token) > 256 {
		return fault("token-file", "the token has %d bytes; give 16 to 256 that cannot be guessed", len(token))
	}
	return nil
}

// errToken is the only answer to a client with a wrong token.
var errToken = errors.New("not allowed")

// admit verifies a client's token.
func (s *Server) admit(request wire.StartupFields) error {
	if s.cfg.Token == nil || s.known(request.Private) {
		return nil
	}
	return errToken
}

// known reports whether a token is the right one, in constant time.
func (s *Server) known(token []byte) bool {
	given, want := sha256.Sum256(token), s.proofs.Load().token
	if subtle.ConstantTimeCompare(given[:], want[:]) == 1 {
		return true
	}
	s.denied.Add(1)
	return false
}
