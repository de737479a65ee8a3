// A control plane that is torn apart, and what checks its history: ../../docs/proof.md
module claimguard.io/proof

go 1.26.0

require github.com/anishathalye/porcupine v1.3.1
