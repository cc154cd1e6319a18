"""MLP: a network of the features alone, trained on labels, end to end."""

from spgcl.methods.supervised import SupervisedMethod


class SupervisedMLP(SupervisedMethod):
    """Two layers that predict classes, no edge used, one model a split, trained on its labels.

    Args:
        num_features: Width of the graph's features.
        num_models: How many models, each with labels of its own.
        num_classes: How many classes they tell apart.
        hidden: Width of the first layer.
        dropout: Share of each layer's inputs that is dropped in training.
        normalise_features: Divide feature rows by their L1 norm.
        steps: Updates of the weights; a model keeps those of its best step on the validation nodes.
        learning_rate: Of Adam.
        weight_decay: L2 strength on the first layer's weights.
    """

    propagate = False
