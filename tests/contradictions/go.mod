// Clusters about which claimguard's commands and its server must not contradict each other: README.md
module claimguard.io/contradictions

go 1.26.0

require go.yaml.in/yaml/v3 v3.0.4
