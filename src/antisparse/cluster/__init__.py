"""Many machines: an index built by tasks of an engine, and served by shards (docs/cluster.md)."""

from antisparse.cluster.build import Built, build
from antisparse.cluster.engine import RayEngine
from antisparse.cluster.sharded import ShardedIndex

__all__ = ["Built", "RayEngine", "ShardedIndex", "build"]
