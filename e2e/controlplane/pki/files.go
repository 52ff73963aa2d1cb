package pki

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

func readCertificate(path string) (*x509.Certificate, error) {
	der, err := readPEM(path)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parsing %s: %w", path, err)
	}
	return certificate, nil
}

func readKey(path string) (crypto.Signer, error) {
	der, err := readPEM(path)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("parsing %s: %w", path, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s holds a key that can't sign", path)
	}
	return signer, nil
}

func readPEM(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("%s is not PEM", path)
	}
	return block.Bytes, nil
}

func writeCertificate(path string, der []byte) error {
	return writePEM(path, "CERTIFICATE", der, 0o644)
}

func writeKey(path string, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding a key: %w", err)
	}
	return writePEM(path, "PRIVATE KEY", der, 0o600)
}

func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}

// ServiceAccountKey returns the key that signs service account tokens, made
// when there is none yet, as the file of the private key and of the public key.
func ServiceAccountKey(folder string) (Pair, error) {
	pair := Pair{
		CertificateFile: filepath.Join(folder, "service-account.pub"),
		KeyFile:         filepath.Join(folder, "service-account.key"),
	}
	key, err := readKey(pair.KeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		if key, err = newSigner(); err == nil {
			err = writeKey(pair.KeyFile, key)
		}
	}
	if err != nil {
		return Pair{}, fmt.Errorf("opening the service account key: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return Pair{}, fmt.Errorf("encoding the public service account key: %w", err)
	}
	return pair, writePEM(pair.CertificateFile, "PUBLIC KEY", der, 0o644)
}

// newSigner is newKey with the type that readKey returns.
func newSigner() (crypto.Signer, error) { return newKey() }
